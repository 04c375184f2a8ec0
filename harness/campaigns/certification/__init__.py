"""Certificates: what a release matrix showed, what it is known to find, and what it leaves out.

facts         a run's folder → the row that a certificate is made of; judged again, its proofs verified
sensitivity   which seeded bugs the same matrix finds, in the simulator
lacks         why there is no certificate
document      rows and what its maker says → certificate.json
page          the same on two printed sheets
making        campaign → rows → certificate, page, bundle
verifying     a bundle → whether all of it follows from the runs in it
compare       what changed between two certificates
"""
