package backstage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/deploy/assert"
)

func TestCopyProduct_KeepsTheNewestCopies(t *testing.T) {
	t.Parallel()
	products := catalog.NewMemory(map[int64][]*cart.Product{1: {{ID: 7}}})
	b := &backstage{store: &store.Store{ID: 1}, products: products}
	for range maxCopies + 2 {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		c.Request.Header.Set("Content-Type", "application/json")
		c.Params = gin.Params{{Key: "id", Value: "7"}}
		_, err := b.copyProduct(c)
		assert.NoError(t, err)
	}
	ids := []int64{7}
	for i := range int64(maxCopies + 2) {
		ids = append(ids, firstCopy+1+i)
	}
	found, err := products.Products(t.Context(), 1, ids)
	assert.NoError(t, err)
	assert.Equal(t, len(found), 1+maxCopies, "products")
	assert.That(t, found[7] != nil && found[ids[1]] == nil && found[ids[2]] == nil && found[ids[3]] != nil,
		"the deleted copies are not the oldest ones")
}
