"""The sections of a report, one module each: each turns the analysis of a study into tables, figures and prose."""
