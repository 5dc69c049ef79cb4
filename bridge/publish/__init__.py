"""The bridge process: publishes rows and display state, answers commands, counts, audits."""
