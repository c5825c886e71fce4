package torture

import (
	"testing"
	"time"

	"commerce/deploy/ephemeral"
)

// Shoppers add to their carts and log in while one in fifty replies is cut, both from Redis to
// the service and from the service to the shopper. They repeat each change until they get a
// response.
func TestPromise02_ARetriedChangeCountsOnce(t *testing.T) {
	t.Parallel()
	p := promised(t, 2, "a retried change counts once", "0 doubled of 100,000")
	redis, database := ephemeral.StartRedis(t), catalog(t)
	back, url := lineTo(t, redis.URL)
	front, base := lineTo(t, startService(t, "REDIS_URL="+url, "DATABASE_URL="+database).URL())
	l := newLoad(p, shopperAt(t, func() string { return base }), redis.Admin())
	l.unkeyed = true

	back.cutReplies(50)
	front.cutReplies(50)
	wanted := sized[int64](2_000, 100_000)
	bar := p.progress("changes", int(wanted))
	stop := l.shop(64, (*visit).make)
	lacks := func() bool { return l.asCustomer.Load() == 0 || l.replayedStamps.Load() == 0 } // rare kinds of repeats
	for n := int64(0); !t.Failed() && (n < wanted || lacks() && n < 20*wanted); n = l.changes.Load() {
		time.Sleep(20 * time.Millisecond)
		_ = bar.Set64(min(wanted, l.changes.Load()))
	}
	stop()
	back.cutReplies(0)
	front.cutReplies(0)
	l.recount(nil)

	p.counted("changes", l.changes.Load())
	p.counted("doubled", l.more.Load()+l.twice.Load())
	p.counted("lost", l.lost.Load())
	p.detail("replies of Redis cut", float64(back.replies.cut.Load()), "")
	p.detail("replies of the service cut", float64(front.replies.cut.Load()), "")
	p.tried("repeats recognized by X-Timestamp only", l.replayedStamps.Load())
	l.tried()
}
