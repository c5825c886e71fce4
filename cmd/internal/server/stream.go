package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
)

// streamWrite is the maximum number of bytes of one write. A slow client must read this
// much within Config.Stall.
const streamWrite = 32 << 10

// stream sends the parts of a stream as they come. An error before the first part is a response like
// any other. A later one closes the connection, so that the client notices it.
func (r *responder) stream(c *gin.Context, answer wire.Answer) {
	w := r.writers.get(answer.Language)
	defer r.writers.put(w)
	begun := false
	for part, err := range answer.Stream.Parts(c.Request.Context(), w) {
		switch {
		case err != nil && begun:
			r.fail(c, answer, fmt.Errorf("%w: %w: %w", http.ErrAbortHandler, errAfterFirstPart, err))
		case err != nil:
			r.fail(c, answer, err)
			return
		case !begun:
			r.beginStream(c, answer.Stream.ContentType)
			begun = true
		}
		if wire.MethodOf(c.Request) == http.MethodHead {
			return
		}
		if err := r.send(c.Writer, part); err != nil {
			r.fail(c, answer, fmt.Errorf("%w: send a part of the stream: %w", http.ErrAbortHandler, err))
		}
	}
}

func (r *responder) beginStream(c *gin.Context, contentType string) {
	c.Header("Content-Type", contentType)
	c.Writer.Header()["Cache-Control"] = notStored
	protect(c.Writer.Header())
	c.Header("X-Accel-Buffering", "no") // or nginx would hold it back
	c.Status(http.StatusOK)
	r.limitUnsent(c.Request.Context())
}

var errAfterFirstPart = errors.New("after the first part of the stream")

func (r *responder) send(w http.ResponseWriter, part []byte) error {
	connection := http.NewResponseController(w)
	for len(part) > 0 {
		n := min(len(part), streamWrite)
		err := connection.SetWriteDeadline(time.Now().Add(r.Stall))
		if err != nil && !errors.Is(err, http.ErrNotSupported) { // a test's recorder has no deadline
			return err
		}
		if _, err := w.Write(part[:n]); err != nil {
			return err
		}
		part = part[n:]
	}
	return connection.Flush()
}

// limitUnsent lets the deadlines of send notice progress of a slow client. It stays for later
// requests of the connection.
func (r *responder) limitUnsent(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*holdingConn); ok {
		if err := limitUnsent(c.Conn); err != nil {
			r.Log.WarnContext(ctx, "slow clients of streams may be cut", "err", err)
		}
	}
}
