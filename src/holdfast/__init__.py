"""holdfast: does a medical language model hold fast?"""
