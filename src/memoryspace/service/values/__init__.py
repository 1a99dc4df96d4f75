"""Values that services exchange with callers and stores: memories, receipts, results, kinds."""
