"""Shipped winners of vLLM's fused-MoE kernel against m3gen's view of the machine code. See moe_winners.py."""
