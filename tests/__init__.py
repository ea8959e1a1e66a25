"""A package, so that the one in tests/page is named as everything else imports it."""
