"""What keeps an index sound: checks beyond checksums, and mending what is damaged."""
