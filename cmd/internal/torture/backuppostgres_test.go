package torture

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestBackup_OfPostgresRestoresSubscriptionsAndTokens(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	steps := runbook(t, "### Postgres")
	assert.Require(t, len(steps) == 2, "the runbook has %d blocks, want the backup and the restore", len(steps))
	database := ephemeral.StartPostgres(t)
	assert.NoError(t, stock(t.Context(), commerce.compiled(t), database.URL))
	token := apiToken(t, database.URL, "backup")
	redis := ephemeral.StartRedis(t)
	s := newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+database.URL))
	const list, changes = "/subscriptions?per_page=100", "/subscriptions/changes?limit=1000"
	listed, cursor := read(t, s, token, list).Data, read(t, s, token, changes).Next

	deploy := assert.Must(filepath.Abs("../../../deploy"))(t)
	dir := t.TempDir()
	assert.NoError(t, os.Symlink(deploy, filepath.Join(dir, "deploy")))
	follow(t, dir, steps[0], "OWNER_URL="+database.URL)
	execSQL(t, database.URL, "DELETE FROM subscriptions WHERE id % 2 = 0")
	restored := strings.Replace(database.URL, "/postgres?", "/commerce_restored?", 1)
	follow(t, dir, steps[1], "ADMIN_URL="+database.URL, "RESTORED_URL="+restored)

	s = newShopper(t, startService(t, "REDIS_URL="+redis.URL, "DATABASE_URL="+loginAs(t, restored, "commerce_service", "")))
	assert.Equal(t, read(t, s, token, list).Data, listed, "the restored list (-before +after)")
	a := s.send("GET", changes+"&after="+cursor, "", "Authorization", "Bearer "+token)
	assert.That(t, a.Code == "cursor_expired", "a cursor of the lost database: %v, want cursor_expired", a)
	read(t, s, token, changes)
	a = s.send("POST", "/cart/add", `{"product_id":1001}`)
	assert.That(t, a.Status == http.StatusOK, "a change of a cart with the restored catalog: %v", a)
}

// subscriptionsPage is the data of a page of subscriptions or of changes.
type subscriptionsPage struct {
	Data []map[string]any
	Next string
}

// read makes a call of a program, which must succeed.
func read(t *testing.T, s *shopper, token, path string) subscriptionsPage {
	t.Helper()
	a := s.send("GET", path, "", "Authorization", "Bearer "+token)
	var page struct{ Data subscriptionsPage }
	err := json.Unmarshal(a.Raw, &page)
	assert.Require(t, a.Status == http.StatusOK && err == nil && len(page.Data.Data) != 0, "GET %s: %v (%v)", path, a, err)
	return page.Data
}
