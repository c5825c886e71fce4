package server

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

// requestID sets the ID that identifies a request in the log and in the response: the
// caller's if it is 1 to 64 characters of A-Za-z0-9._-, else a new one.
func requestID(c *gin.Context) {
	c.Header("X-Request-Id", requestIDFrom(c.GetHeader("X-Request-Id")))
}

// requestIDFrom returns the caller's ID if it may be used, else a new one.
func requestIDFrom(given string) string {
	if usableRequestID(given) {
		return given
	}
	return rand.Text()
}

// requestIDOf returns the ID that requestID has set.
func requestIDOf(c *gin.Context) string { return c.Writer.Header().Get("X-Request-Id") }

func usableRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		b := id[i]
		letter := 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
		if !letter && b != '.' && b != '_' && b != '-' {
			return false
		}
	}
	return true
}
