package backstage

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/redisstore"
	"commerce/cart/wire"
)

// abandoned prints what the command commerce cart abandoned does.
func (b *backstage) abandoned(c *gin.Context) (wire.Answer, error) {
	idle, err := time.ParseDuration(c.DefaultQuery("idle", "24h"))
	within, faulty := time.ParseDuration(c.DefaultQuery("within", "168h"))
	if err = cmp.Or(err, faulty); err != nil || idle < 0 || within <= idle {
		return wire.Answer{}, problem.New(problem.ValidationFailed, "idle", textIdle).Because(err)
	}
	rest := redisstore.Rest{Store: b.store.ID, Now: time.Now(), Idle: idle, Within: within}
	return wire.Answer{Stream: &wire.Stream{ContentType: "application/x-ndjson", Parts: func(ctx context.Context, _ *wire.Writer) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			var guests redisstore.Guests
			var lines bytes.Buffer
			for cursor := uint64(0); ; {
				batch, err := b.carts.AtRest(ctx, b.carts.Client, rest, cursor)
				err = cmp.Or(err, guests.Print(&lines, batch.Carts))
				if cursor = batch.Next; cursor == 0 || err != nil {
					err = cmp.Or(err, guests.PrintTotals(&lines))
					yield(lines.Bytes(), err)
					return
				}
			}
		}
	}}}, nil
}

var textIdle = locale.Text{
	locale.En: "idle and within must be durations such as 1s or 24h, and within the longer one.",
	locale.Ar: "يجب أن يكون idle وwithin مدتين مثل 1s أو 24h، وأن تكون within أطول.",
}
