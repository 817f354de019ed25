"""Open answers: no options are shown, and a judge says what was answered."""
