package main

import (
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestCartShow_PrintsWhatAShopperWroteOnOneLine(t *testing.T) {
	t.Parallel()
	redisURL := ephemeral.Redis(t)
	serve := startServe(t, seeded(t), "REDIS_URL="+redisURL)
	token := serve.mustCall(t, "", "POST", "/cart/add", `{"product_id":1,"notice":"هدية\nNothing is stored."}`).Data.CartToken
	shown := ended(t, program(t, []string{"REDIS_URL=" + redisURL}, "cart", "show", "--store", "1", "--token", token))
	assert.That(t, shown.status == 0 && strings.Contains(shown.out, `notice: هدية\nNothing is stored.`+"\n"),
		"shows %q, %q", shown.out, shown.errors)
	for text, want := range map[string]string{
		"plain":               "plain",
		`say "hi"`:            `say "hi"`,
		"\x1b[2J\r\n\t":       `\x1b[2J\r\n\t`,
		"\u202Ereversed":      `\u202ereversed`,
		"line\u2028break":     `line\u2028break`,
		"not \xff UTF-8":      `not \xff UTF-8`,
		`a \n that was typed`: `a \\n that was typed`,
	} {
		assert.Equal(t, onOneLine(text), want, "%q is shown as", text)
	}
}

func TestCartShow_TakesATokenThatBeginsWithAHyphen(t *testing.T) {
	t.Parallel()
	shown := ended(t, program(t, []string{"REDIS_URL=" + ephemeral.Redis(t)}, "cart", "show", "--store", "1", "--token", "-OpRw04sg0pgZkBmWsSK-g"))
	assert.That(t, shown.status == 0 && strings.Contains(shown.out, "othing is stored"),
		"status %d, shows %q, %q", shown.status, shown.out, shown.errors)
}
