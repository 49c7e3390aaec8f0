"""Forms for values of any JSON Schema: their description for the page, and the check of a value."""
