package platform

import (
	"strings"
	"testing"

	"commerce/deploy/assert"
)

func TestParseAgent_ReadsTheMemberProfileOfADictionary(t *testing.T) {
	t.Parallel()
	const url = "https://agent.example/profiles/shopping-agent.json"
	for header, want := range map[string]string{
		`profile="` + url + `"`:                                        url, // the specification's
		`  profile="` + url + `"  `:                                    url,
		`profile="` + url + `";v=1; w=?0;x`:                            url,
		`name="a, profile=\"https://b\"", profile="` + url + `"`:       url,
		`a,b=1.5,c=:aGk=:,d=(1 "x";q=a tok/en),	profile="` + url + `"`: url,
		`e=(), profile="` + url + `" ,f=?1;a`:                          url,
		`profile="https://first", profile="` + url + `"`:               url,
		`profile="https://a/\\\""`:                                     `https://a/\"`,
		`profile=""`:                                                   "",

		``:                                 "-",
		`"` + url + `"`:                    "-",
		url:                                "-",
		`profile=` + url:                   "-", // a token
		`profile`:                          "-",
		`profile=1`:                        "-",
		`profile=("` + url + `")`:          "-",
		`Profile="` + url + `"`:            "-",
		`profile="` + url:                  "-",
		`profile="` + url + `",`:           "-",
		`,profile="` + url + `"`:           "-",
		`profile="` + url + `" a`:          "-",
		`profile ="` + url + `"`:           "-",
		`profile="https://é"`:              "-",
		"profile=\"https://a\r\nb\"":       "-",
		`profile="https://\a"`:             "-",
		`profile="` + url + `", profile=1`: "-",
		`x={}, profile="` + url + `"`:      "-",
	} {
		got, ok := ParseAgent(header)
		if !ok {
			got += "-"
		}
		assert.Equal(t, got, want, "%q", header)
	}
}

// A regular expression that backtracks would take years.
func TestParseAgent_TakesLinearTime(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"a=(", "a=( ", `a="\\`, "a,", "a;a", "a=(1 ", ` ;`} {
		_, ok := ParseAgent(strings.Repeat(part, 30_000))
		assert.That(t, !ok, "%q many times is an agent", part)
	}
}
