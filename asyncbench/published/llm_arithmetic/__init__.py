"""llm_arithmetic: its JSON Lines, its counts and its table."""

from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on as llm_arithmetic_report_on
