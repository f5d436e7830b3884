"""Several real daemons on a PostgreSQL of their own, a nemesis that breaks what it can, and a checker that believes
only what it can know by itself: the schedules, the nemesis' log, and what the children wrote down.

python -m tests.chaos --nodes 3 --minutes 10 --seed 7 [--faults kill-node,cut-reset] [--lease 5s] [--jobs 200]
"""
