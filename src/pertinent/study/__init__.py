"""Human studies of explanations: design, questions, answers and report."""
