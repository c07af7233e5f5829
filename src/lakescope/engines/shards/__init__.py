"""One question, several processes: each searches a part of the lake, and what they find is put together exactly."""
