package e2e

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/docs"
)

// pageText is a text of the page: a sentence in each language, or its plural forms.
type pageText struct {
	Side  string   `json:"side"` // the file in js/texts
	Key   string   `json:"key"`
	Forms []string `json:"forms"` // in English and Arabic; the last plural form
}

// Every text is there in both languages, once, with the same values in it, and used.
func TestPlaygroundTexts_AreCompleteAndUsed(t *testing.T) {
	p, _ := openStore(t)
	all := evaluate[[]pageText](p, `Promise.all(["shopper", "merchant"].map(async (side) => {
		const { [side]: texts } = await import("./playground/js/texts/" + side + ".js");
		return Object.entries(texts).map(([key, forms]) => ({ side, key, forms: forms.map((text) => [text].flat().at(-1)) }));
	})).then((sides) => sides.flat())`)
	assert.That(t, len(all) > 300, "found %d texts", len(all))
	seen, uses := map[string]string{}, usesOfTexts(t)
	for _, text := range all {
		other, twice := seen[text.Key]
		assert.That(t, !twice, "%s is in %s and %s", text.Key, other, text.Side)
		seen[text.Key] = text.Side
		assert.Require(t, len(text.Forms) == 2, "%s has %d languages", text.Key, len(text.Forms))
		assert.Equal(t, valuesIn(text.Forms[1]), valuesIn(text.Forms[0]), "values of %s in Arabic, compared with English", text.Key)
		assert.That(t, slices.ContainsFunc(uses, func(use *regexp.Regexp) bool { return use.MatchString(text.Key) }), "%s: %s is not used", text.Side, text.Key)
	}
}

var valueInText = regexp.MustCompile(`\{\w+\}`)

// valuesIn are the {names} of values in a text.
func valuesIn(text string) []string {
	found := valueInText.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

var (
	quotedText   = regexp.MustCompile(`"([\w.]+)"|\]\.(\w+)`)
	textTemplate = regexp.MustCompile("`([^`\\s]*\\$\\{[^`\\s]*)`")
	insertedPart = regexp.MustCompile(`\$\{[^}]*\}`)
	playOrStep   = regexp.MustCompile(`\bname: "(\w+)"|\b(?:step|proof)\("(\w+)"|return \["(\w+)"`)
)

// usesOfTexts returns patterns of the keys that the page's files have in quotes or as templates,
// and of those that the player makes of a play's name and its steps'.
func usesOfTexts(t *testing.T) (uses []*regexp.Regexp) {
	t.Helper()
	use := func(pattern string) { uses = append(uses, regexp.MustCompile("^(?:"+pattern+")$")) }
	assert.NoError(t, fs.WalkDir(docs.Playground, "playground", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".js", ".html"}, path.Ext(file)) || strings.Contains(file, "/texts/") {
			return err
		}
		source, err := docs.Playground.ReadFile(file)
		if err != nil {
			return err
		}
		for _, match := range quotedText.FindAllSubmatch(source, -1) {
			use(regexp.QuoteMeta(string(match[1]) + string(match[2])))
		}
		if strings.Contains(file, "/plays/") {
			play := ""
			for _, name := range playOrStep.FindAllSubmatch(source, -1) {
				if len(name[1]) > 0 {
					play = string(name[1])
					use(play + "_(title|point)")
				}
				use(play + "_" + string(name[2]) + string(name[3]))
			}
			return nil
		}
		for _, match := range textTemplate.FindAllSubmatch(source, -1) {
			if fixed := insertedPart.ReplaceAllString(string(match[1]), ""); len(fixed) > 1 {
				use(strings.ReplaceAll(regexp.QuoteMeta(insertedPart.ReplaceAllString(string(match[1]), "\x00")), "\x00", `\w+`))
			}
		}
		return nil
	}))
	return uses
}
