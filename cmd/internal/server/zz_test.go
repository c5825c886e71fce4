package server_test
import ("testing";"time";"strings";"runtime";"commerce/deploy/ephemeral";"commerce/cmd/internal/server")
func TestZZ(t *testing.T){
 var s *shop
 st:=time.Now()
 t.Run("x",func(t *testing.T){
 s=openShop(t,"rediss"+strings.TrimPrefix(ephemeral.Redis(t),"redis"), func(p *server.Parts) { p.RedisBudget = 0 })
 c:=s.guest(t); c.Token=strings.Repeat("t",30)
 t.Log(time.Since(st)); 
 c.refused(503,"unavailable","GET","/cart","")
 t.Log(time.Since(st)); 
 })
 for i:=0;i<60;i++{ b:=make([]byte,1<<20); n:=runtime.Stack(b,true); if !strings.Contains(string(b[:n]),"tls.(*Conn)"){t.Log("gone",time.Since(st));return}; time.Sleep(50*time.Millisecond)}
 t.Log("still")
}
