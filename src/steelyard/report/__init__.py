"""The report of a study: tables and charts as HTML, PDF, LaTeX and data sets."""
