"""What a sentence does, judged by small models that were trained on labelled sentences."""
