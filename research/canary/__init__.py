"""The controlled study (2604.22191, §3.3): policies trained with documents and without, audited.

A trial simulates one provider: votes on what its model answered, a reward model trained on them, a
policy trained on that reward. It never sees whether the auditor finds it; the auditor sees the
policy alone. Needs torch and transformers (extra ``rl``), which every module imports locally.
"""
