"""What tests share: lakes, indexes, servers and clusters made for them, and ways to compare. No test is in here."""
