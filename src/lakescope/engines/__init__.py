"""Who answers: one folder a field, with modules named as in the papers."""
