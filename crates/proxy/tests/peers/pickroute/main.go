// Command pickroute measures what a decision of Xray's router costs.
//
//	pickroute CONFIG QUESTIONS ROUNDS
//
// CONFIG is a configuration of which only "routing" is read, QUESTIONS a file with a host and a port a line. Answers, the
// number of the rule or -1, go to standard output; the time of every 64 decisions in nanoseconds each goes to standard error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/xtls/xray-core/app/router"
	"github.com/xtls/xray-core/common/net"
	"github.com/xtls/xray-core/features/routing"
	"github.com/xtls/xray-core/infra/conf"
)

type question struct {
	host string
	ips  []net.IP
	port net.Port
}

func (q *question) GetInboundTag() string            { return "in" }
func (q *question) GetSourceIPs() []net.IP           { return source }
func (q *question) GetSourcePort() net.Port          { return 40000 }
func (q *question) GetTargetIPs() []net.IP           { return q.ips }
func (q *question) GetTargetPort() net.Port          { return q.port }
func (q *question) GetLocalIPs() []net.IP            { return source }
func (q *question) GetLocalPort() net.Port           { return 1080 }
func (q *question) GetTargetDomain() string          { return q.host }
func (q *question) GetNetwork() net.Network          { return net.Network_TCP }
func (q *question) GetProtocol() string              { return "tls" }
func (q *question) GetUser() string                  { return "" }
func (q *question) GetVlessRoute() net.Port          { return 0 }
func (q *question) GetAttributes() map[string]string { return nil }
func (q *question) GetSkipDNSResolve() bool          { return false }

var source = []net.IP{net.IP{192, 168, 1, 7}}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func questions(path string) []*question {
	file, err := os.Open(path)
	must(err)
	defer file.Close()
	var all []*question
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		host, port, _ := strings.Cut(lines.Text(), " ")
		number, err := strconv.Atoi(port)
		must(err)
		q := &question{port: net.Port(number)}
		if ip := net.ParseIP(host); ip == nil {
			q.host = host
		} else if v4 := ip.To4(); v4 != nil {
			q.ips = []net.IP{v4}
		} else {
			q.ips = []net.IP{ip}
		}
		all = append(all, q)
	}
	must(lines.Err())
	return all
}

const batch = 64

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var config struct {
		Routing conf.RouterConfig `json:"routing"`
	}
	must(json.Unmarshal(text, &config))
	built, err := config.Routing.Build()
	must(err)
	for at, rule := range built.Rule {
		rule.RuleTag = strconv.Itoa(at)
	}
	rules := new(router.Router)
	must(rules.Init(nil, built, nil, nil, nil))
	all := questions(os.Args[2])
	rounds, err := strconv.Atoi(os.Args[3])
	must(err)

	out := bufio.NewWriter(os.Stdout)
	pick := func(q *question) string {
		route, err := rules.PickRoute(routing.Context(q))
		if err != nil {
			return "-1"
		}
		return route.GetRuleTag()
	}
	for _, q := range all {
		fmt.Fprintln(out, pick(q))
	}
	must(out.Flush())
	times := bufio.NewWriter(os.Stderr)
	found := 0
	for range rounds {
		for at := 0; at+batch <= len(all); at += batch {
			begun := time.Now()
			for _, q := range all[at : at+batch] {
				found += len(pick(q))
			}
			fmt.Fprintf(times, "%.1f\n", float64(time.Since(begun).Nanoseconds())/batch)
		}
	}
	must(times.Flush())
	if found == 0 {
		os.Exit(1)
	}
}
