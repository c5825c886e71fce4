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

// pageText is a text in one language: a sentence, or its plural forms.
type pageText struct {
	Area     string            `json:"area"` // the file in js/texts
	Key      string            `json:"key"`
	Language string            `json:"language"`
	Forms    map[string]string `json:"forms"` // "" for a sentence
}

// Every text is there in both languages, once, with the same values in it, and used.
func TestPlaygroundTexts_AreCompleteAndUsed(t *testing.T) {
	p, _ := openStore(t)
	all := evaluate[[]pageText](p, `Promise.all(["page", "hero", "shop", "scenarios", "log", "merchant"].map(async (area) => {
		const { [area]: texts } = await import("./playground/js/texts/" + area + ".js");
		return Object.entries(texts).flatMap(([language, byKey]) => Object.entries(byKey).map(([key, text]) =>
			({ area, key, language, forms: typeof text === "string" ? { "": text } : text })));
	})).then((areas) => areas.flat())`)
	texts := map[string]map[string]pageText{"en": {}, "ar": {}}
	for _, text := range all {
		other, twice := texts[text.Language][text.Key]
		assert.That(t, !twice, "%s is in %s and %s", text.Key, other.Area, text.Area)
		texts[text.Language][text.Key] = text
	}
	uses := usesOfTexts(t)
	for key, english := range texts["en"] {
		arabic, translated := texts["ar"][key]
		assert.That(t, translated && arabic.Area == english.Area, "%s: %s is not in Arabic", english.Area, key)
		assert.Equal(t, arabic.values(), english.values(), "values of %s in Arabic, compared with English", key)
		assert.That(t, slices.ContainsFunc(uses, func(use *regexp.Regexp) bool { return use.MatchString(key) }), "%s: %s is not used", english.Area, key)
	}
	for key, arabic := range texts["ar"] {
		_, found := texts["en"][key]
		assert.That(t, found, "%s: %s is not in English", arabic.Area, key)
	}
}

var valueInText = regexp.MustCompile(`\{\w+\}`)

// values are the {names} of values in the text. A plural form may leave out its number.
func (text pageText) values() []string {
	found := valueInText.FindAllString(text.Forms[""]+text.Forms["other"], -1)
	slices.Sort(found)
	return slices.Compact(found)
}

var (
	quotedText   = regexp.MustCompile(`"([\w.]+)"|\]\.(\w+)`)
	textTemplate = regexp.MustCompile("`([^`\\s]*\\$\\{[^`\\s]*)`")
	insertedPart = regexp.MustCompile(`\$\{[^}]*\}`)
	namedPart    = regexp.MustCompile(`\bname: "(\w+)"`)
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
			names := namedPart.FindAllSubmatch(source, -1)
			for _, step := range names[1:] {
				use(string(names[0][1]) + "_(title|" + string(step[1]) + ")")
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
