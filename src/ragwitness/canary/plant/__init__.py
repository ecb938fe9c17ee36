"""What is sent: traces of document, query and vote, checked before they leave."""
