"""Reports of an audit, all rendered from one :class:`~ragwitness.results.audit.AuditResult`."""
