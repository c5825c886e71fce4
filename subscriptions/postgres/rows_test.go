package postgres

import (
	"testing"

	"go.uber.org/goleak"

	"commerce/deploy/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestText_IsTheOneOfEachRow(t *testing.T) {
	t.Parallel()
	var column Text
	read := []byte("monthly") // the driver uses the same memory for the next row
	var rows []Text
	for _, value := range []string{"monthly", "monthly", "yearly.", ""} {
		assert.NoError(t, column.ScanBytes(append(read[:0], value...)))
		rows = append(rows, column)
	}
	assert.Equal(t, rows, []Text{"monthly", "monthly", "yearly.", ""}, "rows have")
	assert.ErrorIs(t, column.ScanBytes(nil), errNull, "null")
}
