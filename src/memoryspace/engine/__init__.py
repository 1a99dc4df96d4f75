"""The module layout of AgentScope's runtime, for programs that change the root of their imports.

There is no code here: each module re-exports names of ``memoryspace.service`` under the path that
the runtime gives them. No other part of the package imports it; new programs use
``memoryspace.service``.
"""
