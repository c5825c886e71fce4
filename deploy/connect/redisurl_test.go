package connect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
)

func TestParseRedisURL_ReadsEveryForm(t *testing.T) {
	t.Parallel()
	type set = redis.UniversalOptions
	for raw, want := range map[string]redisTarget{
		"redis://localhost":                {UniversalOptions: set{Addrs: []string{"localhost:6379"}}},
		"redis://localhost:7000/":          {UniversalOptions: set{Addrs: []string{"localhost:7000"}}},
		"redis://[::1]:7000/3":             {UniversalOptions: set{Addrs: []string{"[::1]:7000"}, DB: 3}},
		"redis://[::1]":                    {UniversalOptions: set{Addrs: []string{"[::1]:6379"}}},
		"redis://h?db=4":                   {UniversalOptions: set{Addrs: []string{"h:6379"}, DB: 4}},
		"redis://:secret@h":                {UniversalOptions: set{Addrs: []string{"h:6379"}, Password: "secret"}},
		"redis://ann:p%40s%2Fs@h:1/2":      {UniversalOptions: set{Addrs: []string{"h:1"}, Username: "ann", Password: "p@s/s", DB: 2}},
		"redis://ann:p@ss,word@h":          {UniversalOptions: set{Addrs: []string{"h:6379"}, Username: "ann", Password: "p@ss,word"}},
		"redis://a:1,b:2,c":                {kind: cluster, UniversalOptions: set{Addrs: []string{"a:1", "b:2", "c:6379"}}},
		"redis://u:p@a:1,[::1]:2/0":        {kind: cluster, UniversalOptions: set{Addrs: []string{"a:1", "[::1]:2"}, Username: "u", Password: "p"}},
		"redis://h?cluster=true":           {kind: cluster, UniversalOptions: set{Addrs: []string{"h:6379"}}},
		"redis://h?cluster=false":          {UniversalOptions: set{Addrs: []string{"h:6379"}}},
		"redis://h/1?master=main":          {kind: sentinels, UniversalOptions: set{Addrs: []string{"h:26379"}, DB: 1, MasterName: "main"}},
		"redis://a,b:5?master=m&cluster=1": {kind: sentinels, UniversalOptions: set{Addrs: []string{"a:26379", "b:5"}, MasterName: "m"}},
		"redis://u:p@a?master=m&sentinel_username=s&sentinel_password=q@q": {
			kind: sentinels, UniversalOptions: set{
				Addrs: []string{"a:26379"}, Username: "u", Password: "p",
				MasterName: "m", SentinelUsername: "s", SentinelPassword: "q@q",
			},
		},
	} {
		got, err := parseRedisURL(raw)
		diff := cmp.Diff(want, got, cmp.AllowUnexported(redisTarget{}, tlsFiles{}), cmpopts.EquateEmpty())
		assert.That(t, err == nil && diff == "", "parseRedisURL(%q): %v (-want +got):\n%s", raw, err, diff)
	}
}

func TestParseRedisURL_TLSVerifiesEachNodeByItsOwnName(t *testing.T) {
	t.Parallel()
	got := assert.Must(parseRedisURL("rediss://a,b"))(t)
	tls := got.TLSConfig
	assert.That(t, tls != nil && tls.ServerName == "" && !tls.InsecureSkipVerify && tls.RootCAs == nil,
		"tls = %+v, want verification by the dialed name and the system's authorities", tls)
}

// Each bad URL contains "hunter" or a part of it, which no error may repeat.
var badRedisURLs = map[string]string{ // URL: part of its error
	"":                                      "must start with redis://",
	"hunter":                                "must start with redis://",
	"http://hunter@h":                       "must start with redis://",
	"redis://":                              "host 1 of 1",
	"redis://u:hunter@":                     "host 1 of 1",
	"redis://u:hunter@a,,b":                 "host 2 of 3",
	"redis://u:hun%zzter@h":                 "percent-encoded",
	"redis://u:hunter#1@h":                  "percent-encoded",
	"redis://u:hunter/1@h":                  "must be",
	"redis://u:hunter?1@h":                  "unknown parameter",
	"redis://u:hunter@h:port":               "host 1 of 1",
	"redis://u:hunter@h:0":                  "port must be from 1 to 65535",
	"redis://u:hunter@h:65536":              "port must be from 1 to 65535",
	"redis://u:hunter@h/x":                  "database must be a number",
	"redis://u:hunter@h/-1":                 "database must be a number",
	"redis://u:hunter@h?clutser=true":       "unknown parameter",
	"redis://u:hunter@h?cluster=hunter":     "true or false",
	"redis://u:hunter@h?db=1&db=2":          "twice",
	"redis://u:hunter@h?db=%zz":             "cannot be read",
	"redis://h?sentinel_password=hunter":    "need master",
	"redis://u:hunter@a,b/1":                "database 0 only",
	"redis://u:hunter@h/1?cluster=true":     "database 0 only",
	"redis://u:hunter@a,u:hunter@b:hunter":  "host 1 of 1",
	"redis://u:hunter@h,b/0?master=m&x=hun": "unknown parameter",
	"redis://u:hunter@h?ca_file=ca.pem":     "need rediss://",
	"rediss://u@h?ca_file=/hunter/ca.pem":   "ca_file: no such file",
	"rediss://u:hunter@h?ca_file=/dev/null": "ca_file: not a regular file",
	"rediss://u:hunter@h?ca_file=/dev/zero": "ca_file: not a regular file", // it would be read forever
	"rediss://h?cert_file=/hunter":          "need each other",
	"rediss://h?key_file=/hunter":           "need each other",
	"rediss://h?cert_file=/hun&key_file=/h": "cert_file: no such file",
}

func TestParseRedisURL_ReportsErrorsInOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()
	for raw, want := range badRedisURLs {
		_, err := parseRedisURL(raw)
		text := fmt.Sprint(err)
		assert.That(t, strings.Contains(text, want) && !strings.Contains(text, "hun") && !strings.Contains(text, "\n"),
			"parseRedisURL(%q): %q, want one line with %q and no part of the URL", raw, text, want)
	}
}

func FuzzParseRedisURL(f *testing.F) {
	for raw := range badRedisURLs {
		f.Add(raw)
	}
	f.Add("rediss://ann:p%40s@a:1,[::1]:2/0?master=m&sentinel_password=q")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseRedisURL(raw)
		if err != nil {
			assert.That(t, !strings.Contains(err.Error(), "\n"), "error with several lines: %q", err)
			return
		}
		assert.That(t, len(got.Addrs) != 0, "no address")
		assert.That(t, got.TLSConfig == nil || !got.TLSConfig.InsecureSkipVerify, "certificates are not verified")
		assert.Equal(t, (got.kind == sentinels), (got.MasterName != ""), "kind %d with master %q", got.kind, got.MasterName)
	})
}
