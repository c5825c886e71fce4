package backstage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
)

// agentsPaths are those of the Universal Commerce Protocol.
var agentsPaths = regexp.MustCompile(`^(/[\w-]+)*/ucp/\w+/carts(/[\w-]+(/cancel)?)?$|^/\.well-known/ucp$`)

// agent makes the call that the body describes, to this service, and answers with its response. It acts as
// an AI agent on this machine, which a page cannot, because a browser adds its Origin. So it acts only for this
// machine: the service lets such an agent name profiles on loopback addresses.
func (b *backstage) agent(c *gin.Context) (wire.Answer, error) {
	if !auth.IsLocal(c.Request) {
		return wire.Answer{}, problem.New(problem.NotFound, "", textNotHere)
	}
	body, _, err := wire.ReadBody(c.Request)
	if err != nil {
		return wire.Answer{}, err
	}
	var asked struct {
		Method, Path, Body string
		Headers            map[string]string
	}
	err = json.Unmarshal(body, &asked)
	r, faulty := http.NewRequestWithContext(c.Request.Context(), asked.Method, ownURL(c.Request)+asked.Path, strings.NewReader(asked.Body))
	if err = cmp.Or(err, faulty); err != nil || !agentsPaths.MatchString(asked.Path) {
		return wire.Answer{}, problem.New(problem.ValidationFailed, "path", textAgent).Because(err)
	}
	for name, value := range asked.Headers {
		r.Header.Set(name, value)
	}
	response, err := b.client.Do(r)
	if err != nil {
		return wire.Answer{}, problem.New(problem.Unavailable, "", textAgentFails).Because(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return wire.Answer{}, problem.New(problem.Unavailable, "", textAgentFails).Because(err)
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("status", int64(response.StatusCode))
		w.Text("body", string(said))
		w.Object("headers")
		for name := range response.Header {
			w.Text(strings.ToLower(name), response.Header.Get(name))
		}
		w.EndObject()
		w.EndObject()
	}}, nil
}

func ownURL(r *http.Request) string {
	own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	_, port, _ := net.SplitHostPort(fmt.Sprint(own))
	return "http://localhost:" + port
}

var (
	textAgent = locale.Text{
		locale.En: "An agent can call only the Universal Commerce Protocol: send method, path, headers and body as text.",
		locale.Ar: "لا يستدعي الوكيل إلا Universal Commerce Protocol: أرسل method وpath وheaders وbody كنص.",
	}
	textNotHere = locale.Text{
		locale.En: "To act as an agent, open this page on the machine that runs the demo, with localhost as the host of its URL.",
		locale.Ar: "للعمل كوكيل، افتح هذه الصفحة على الجهاز الذي يشغّل العرض التجريبي، مع localhost مضيفًا في رابطها.",
	}
	textAgentFails = locale.Text{
		locale.En: "The agent cannot reach this service.",
		locale.Ar: "لا يستطيع الوكيل الوصول إلى هذه الخدمة.",
	}
)
