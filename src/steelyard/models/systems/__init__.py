"""Comparing systems: scores of the groups that items belong to, their differences, rank ranges and clusters.

`judgments` prepares the data, `adjusted_means` and `strengths` estimate the scores, `clustered` their covariance,
`pairwise` compares every two systems, and `wmt` has the procedures of the Conference on Machine Translation.
"""
