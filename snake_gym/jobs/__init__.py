"""Jobs: programs that run in processes of their own, side by side, on this machine or on the nodes of a Ray cluster.

A job can be killed at any time: its files are written whole, and the same command continues from them. ``job`` says
what a job is and starts its process, ``report`` is the side of the job itself, ``workers`` (this machine) and
``cluster`` (Ray) run jobs, and ``run`` keeps as many of them running as there are workers.
"""
