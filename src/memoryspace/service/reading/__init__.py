"""Reading from a service: filters, pages, searches and standing instructions."""
