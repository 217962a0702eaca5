"""A study with people: questions about explanations, who gets which, the answers, and what they say."""
