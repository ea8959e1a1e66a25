"""llm_arithmetic: its counts, its tables and its pictures."""

from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on as llm_arithmetic_report_on
