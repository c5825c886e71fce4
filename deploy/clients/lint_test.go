package clients_test

import "testing"

// testdata/redocly.yaml lists the rules, and why some are off.
func TestDocument_LintsWithoutWarnings(t *testing.T) {
	t.Parallel()
	redocly, dir := npm(t, "redocly")
	run(t, dir, redocly, "lint", "--max-problems=100", "--format=stylish", "--config="+absolute(t, "testdata/redocly.yaml"), absolute(t, document))
}
