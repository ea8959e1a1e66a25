"""Load: latency, throughput and accuracy of each step, and the highest rate that held."""
