"""Paging and collection policies, replayed on one recorded trace."""
