"""Who watches a job, and what they are sent: its text as it comes, from any point on, and how it ended."""
