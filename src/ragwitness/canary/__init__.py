"""Behavioural canaries: were retrieved documents used to train a model by reinforcement learning?

A data owner plants documents that hold a secret trigger, and votes for answers that hold a canary
where the trigger is there. A model trained on documents *and* votes learns the link; one trained
without documents cannot (arXiv 2604.22191). Four steps, all pure: ``design`` draws and commits,
``plant`` makes what is sent, ``score`` asks a deployed model, ``decide`` says what it shows.
"""
