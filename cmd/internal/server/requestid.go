package server

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

// requestIDFrom returns the caller's ID if it is 1 to 64 characters of A-Za-z0-9._-, else a new one.
// It identifies the request in the log and in the response.
func requestIDFrom(given string) string {
	if usableRequestID(given) {
		return given
	}
	return rand.Text()
}

// requestIDOf returns the ID of a request.
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
