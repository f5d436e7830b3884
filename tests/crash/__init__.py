"""Real daemons under load, killed and stopped at random, and a checker that believes only what it can know by itself.

python -m tests.crash --kills 100 --seed 7 [--how daemon|supervisor|stop-supervisor|stop-daemon] [--database postgresql]
"""
