"""Reports: the document into lines, markdown, JUnit and pages."""
