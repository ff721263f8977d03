module https-post

go 1.22
