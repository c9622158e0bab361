//go:build integration

package integration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"downpour/integration/e2e"
)

// Our package for Python: its own tests, with scripted servers.
func TestPython_package(t *testing.T) {
	must[[]byte](t)(e2e.Python(within(t, 2*time.Minute), "integration/python/tests/run.py"))
}

// Its frames of a live query are those of the same query asked fresh, after late
// points, corrections and new series; over TLS with tokens, which refuse others.
func TestPython_follow(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	certificate, key := selfSigned(t)
	const read, write = "a-token-for-reading", "a-token-for-writing"
	ours := embedded(t, map[string]string{
		"DOWNPOUR_TLS_CERT": certificate, "DOWNPOUR_TLS_KEY": key,
		"DOWNPOUR_TOKEN_FILE": writeFile(t, "tokens", "read "+read+"\nwrite "+write+"\n"),
	})
	out := must[[]byte](t)(e2e.Python(ctx, "integration/readers/follow.py", ours.URL, certificate, read, write))
	t.Logf("%s", out)
}

// selfSigned makes a certificate of 127.0.0.1 and returns the files of it and of
// its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	signed := must[[]byte](t)(x509.CreateCertificate(rand.Reader, made, made, &private.PublicKey, private))
	secret := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return writeFile(t, "cert.pem", text("CERTIFICATE", signed)), writeFile(t, "key.pem", text("PRIVATE KEY", secret))
}

// An expression that the package turns into JSON, as the WebSocket wants it, has
// the answer that the gateway gives to the expression itself.
func TestPython_expressions(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ours := embedded(t, nil)
	put(ctx, t, ours.URL, introduce())
	put(ctx, t, ours.URL, dataset(7))
	expressions := []string{
		"sum:load.int", "none:load.int{host=web01}", "avg:5m-avg:load.float{host=*,dc=lga}", "max:load.int{host=web*}",
		"sum:load.int{host=web01|db02}{dc=lga}", "sum:load.int{}{dc=*}", "min:10m-max-nan:load.mixed{host=*}{dc=literal_or(lga|sjc)}",
		"sum:rate:load.counter{host=*}", "sum:rate{counter}:load.counter", "sum:rate{counter,65535,10}:load.counter{host=*}",
		"sum:rate{dropcounter}:1m-max:load.counter{host=*}", "sum:load.int{host=regexp(web0[12])}", "sum:load.int{host=not_literal_or(web01)}",
		"sum:load.int{host=iwildcard(WEB*)}{dc=wildcard(*)}", "sum:explicit_tags:load.int{host=*,dc=*}", "sum:1h-sum-zero:load.ms{host=*}",
	}
	lines := bytes.Split(bytes.TrimSpace(must[[]byte](t)(e2e.Python(ctx, "integration/readers/expressions.py", expressions...))), []byte("\n"))
	for i, expression := range expressions {
		times := fmt.Sprintf("start=%d&end=%d", dataStart, dataStart+7200)
		want := must[e2e.Answer](t)(e2e.Get(ctx, ours.URL+"/api/query?"+times+"&m="+url.QueryEscape(expression)))
		body := fmt.Sprintf(`{"start":%d,"end":%d,"queries":[%s]}`, dataStart, dataStart+7200, lines[i])
		got := must[e2e.Answer](t)(e2e.Post(ctx, ours.URL+"/api/query", body))
		if want.Status != 200 || got.Status != want.Status || string(got.Body) != string(want.Body) || !strings.Contains(string(got.Body), "dps") {
			t.Errorf("%s as %s: %d %.300s\nwant %d %.300s", expression, lines[i], got.Status, got.Body, want.Status, want.Body)
		}
	}
}
