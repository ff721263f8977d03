// Command https-post-go moves one file the way LocalSend does: one HTTPS POST whose body is the file, over TLS 1.3.
//
//	https-post-go receive --dir DIR --cert FILE        print "listening ADDR", take one file, exit
//	https-post-go send --to ADDR --cert FILE --file FILE
//
// It is a peer of the lab's workload files: the plainest correct program for the job with nothing but Go's standard
// library, in the order of suites that Go prefers (AES-128-GCM first where the processor has AES). Both ends are on one
// machine. The certificate is made at the start and written to a file, which the sender trusts, so
// that the name and the key are checked as they would be between two machines.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// version changes when what is sent does.
const version = "1"

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	var err error
	switch os.Args[1] {
	case "receive":
		err = receive(os.Args[2:])
	case "send":
		err = send(os.Args[2:])
	case "version":
		fmt.Println("https-post-go", version, runtime.Version())
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "https-post-go:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: https-post-go receive --dir DIR --cert FILE [--listen ADDR] | send --to ADDR --cert FILE --file FILE")
	os.Exit(2)
}

// receive takes one file and writes its body to a file of the same name in a folder.
func receive(args []string) error {
	flags := flag.NewFlagSet("receive", flag.ExitOnError)
	dir := flags.String("dir", "", "folder that gets the file")
	cert := flags.String("cert", "", "file that gets the certificate")
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	_ = flags.Parse(args)
	if *dir == "" || *cert == "" {
		usage()
	}
	identity, chain, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	// The certificate is complete before the address is told.
	if err := os.WriteFile(*cert, chain, 0o600); err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())

	done := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload/{name}", func(w http.ResponseWriter, r *http.Request) {
		err := store(*dir, r)
		if err != nil {
			http.Error(w, "not stored", http.StatusInternalServerError)
		}
		select {
		case done <- err:
		default:
		}
	})
	server := &http.Server{
		Handler: mux,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{identity},
			MinVersion:   tls.VersionTLS13,
			// HTTP/2 would flow-control the one body that there is.
			NextProtos: []string{"http/1.1"},
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	select {
	case err = <-served:
		return err
	case err = <-done:
	}
	// The reply is on its way: let it out before the end.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx))
}

// store writes a request's body to the file that its path names.
func store(dir string, r *http.Request) (err error) {
	name := filepath.Base(r.PathValue("name"))
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return fmt.Errorf("not a file name: %q", name)
	}
	if r.ContentLength < 0 {
		return errors.New("the request does not say how long the file is")
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// 512 KiB buffers, as LocalSend's receiver writes. The wrappers hide ReadFrom and WriteTo, which would choose 32 KiB.
	n, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{r.Body}, make([]byte, 512<<10))
	if err != nil {
		return err
	}
	if n != r.ContentLength {
		return fmt.Errorf("%d bytes came, %d were announced", n, r.ContentLength)
	}
	return nil
}

// send posts one file.
func send(args []string) error {
	flags := flag.NewFlagSet("send", flag.ExitOnError)
	to := flags.String("to", "", "address of the receiver")
	cert := flags.String("cert", "", "the receiver's certificate")
	path := flags.String("file", "", "file to send")
	_ = flags.Parse(args)
	if *to == "" || *cert == "" || *path == "" {
		usage()
	}
	chain, err := os.ReadFile(*cert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(chain) {
		return errors.New("no certificate in " + *cert)
	}
	file, err := os.Open(*path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		// Both are 4 KiB by default, which would make records of 4 KiB.
		WriteBufferSize: 512 << 10,
		ReadBufferSize:  64 << 10,
		// A proxy of the environment would take the file off this machine.
		Proxy: nil,
	}
	defer transport.CloseIdleConnections()
	// The wrapper hides the file's WriteTo, which would choose 32 KiB.
	request, err := http.NewRequest(http.MethodPost, "https://"+*to+"/upload/"+filepath.Base(*path), struct{ io.Reader }{file})
	if err != nil {
		return err
	}
	request.ContentLength = info.Size()
	reply, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return errors.New("the receiver said " + reply.Status)
	}
	return nil
}

// selfSigned makes a key and a certificate for 127.0.0.1, as LocalSend makes one for each device.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "https-post"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, chain, nil
}
