"""What users rely on, as text in `golden/`: a test compares it, `python -m tests.contracts` renews it."""
